//go:build !linux

package intent

import "errors"

func volume(string) (total, free uint64, err error) {
	return 0, 0, errors.New("the size of a volume is only known on linux")
}
