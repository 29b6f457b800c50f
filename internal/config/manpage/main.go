// Manpage completes the manual page: it copies a frame and puts the section on
// environment variables, made from the configuration table, in place of the
// line ".\" ENVIRONMENT".
//
//	manpage docs/fi_weft.7.in > docs/fi_weft.7
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/weft-fabric/weft/internal/config"
)

const place = ".\\\" ENVIRONMENT\n"

// complete returns the page that the frame makes.
func complete(frame []byte) ([]byte, error) {
	if bytes.Count(frame, []byte(place)) != 1 {
		return nil, fmt.Errorf("the frame has not exactly one line %q", place[:len(place)-1])
	}
	var section bytes.Buffer
	if err := config.WriteMan(&section); err != nil {
		return nil, err
	}
	return bytes.Replace(frame, []byte(place), section.Bytes(), 1), nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manpage FRAME")
		os.Exit(2)
	}
	frame, err := os.ReadFile(os.Args[1])
	if err == nil {
		frame, err = complete(frame)
	}
	if err == nil {
		_, err = os.Stdout.Write(frame)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manpage:", err)
		os.Exit(1)
	}
}
