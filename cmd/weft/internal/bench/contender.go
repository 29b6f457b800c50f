package bench

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// contender is what is measured: a provider, with variables of its own. Written
// as in a shell: "shm", "FI_WEFT_STATS=no weft".
type contender struct {
	text     string // as given: its name in every result
	provider string
	env      []string // NAME=VALUE
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

func parseContender(text string) (contender, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return contender{}, errors.New("a provider without a name")
	}
	c := contender{strings.Join(words, " "), words[len(words)-1], words[:len(words)-1]}
	for _, v := range c.env {
		if !variable.MatchString(v) {
			return contender{}, fmt.Errorf("%q: %q is not NAME=VALUE", text, v)
		}
	}
	if variable.MatchString(c.provider) {
		return contender{}, fmt.Errorf("%q names no provider", text)
	}
	return c, nil
}

// parseContenders reads the list of the command line, in which none may be twice.
func parseContenders(list []string) ([]contender, error) {
	if len(list) == 0 {
		return nil, errors.New("no provider is named")
	}
	var all []contender
	for _, text := range list {
		c, err := parseContender(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o contender) bool { return o.text == c.text }) {
			return nil, fmt.Errorf("%q is named twice", c.text)
		}
		all = append(all, c)
	}
	return all, nil
}

// names are those in results.
func names(list []contender) (texts []string) {
	for _, c := range list {
		texts = append(texts, c.text)
	}
	return texts
}
