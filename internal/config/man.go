package config

import (
	"fmt"
	"io"
	"strings"
)

// WriteMan writes the manual page's section on environment variables, in
// troff with the man macros.
func WriteMan(w io.Writer) error {
	if _, err := fmt.Fprintln(w, ".SH ENVIRONMENT"); err != nil {
		return fmt.Errorf("manual section: %w", err)
	}
	for i := range table {
		if _, err := io.WriteString(w, table[i].man()); err != nil {
			return fmt.Errorf("manual section: %w", err)
		}
	}
	return nil
}

// man returns the paragraph of one variable.
func (v *Var) man() string {
	return fmt.Sprintf(".TP\n.B %s\n(%s)\n%s\nDefault: %s.\nRange: %s.\n",
		roff(v.Env()), roff(v.kindAndUnit()), roff(v.Help), roff(v.shownDefault()), roff(v.Range))
}

// roff escapes text for troff: backslashes, hyphens, and control characters
// at the start of a line.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
