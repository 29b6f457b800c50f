// Package lint checks rules of the repository that no compiler knows: which
// package may import which, which may hold C, how long a file may be, that
// nothing names the machine it was written on, and that the manual page is
// what the configuration table says. The checks are this package's tests;
// "make lint" and "make test" run them.
package lint
