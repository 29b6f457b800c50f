// Package wrap breaks text into lines.
package wrap

import "strings"

// Lines breaks text at spaces into lines of at most n columns, by a function that counts the columns of a text. A word
// that is longer has a line of its own. A text without words is one empty line.
func Lines(text string, n int, columns func(string) int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && columns(line)+1+columns(word) > n {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
