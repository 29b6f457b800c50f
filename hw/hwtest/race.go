//go:build race

package hwtest

// raceDetector: order that goes through shared segments is not seen by it.
const raceDetector = true
