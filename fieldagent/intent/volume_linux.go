package intent

import "syscall"

// volume returns the size of the volume that holds dir and what is left on it
// for this user.
func volume(dir string) (total, free uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	block := uint64(st.Bsize) // its type differs between architectures
	return st.Blocks * block, st.Bavail * block, nil
}
