//go:build !race

package hwtest

const raceDetector = false
