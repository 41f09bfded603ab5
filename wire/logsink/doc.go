// Package logsink stands between a program and whoever reads its log, so that the
// program's life and pace do not depend on the reader.
//
//	s := logsink.New(os.Stderr)
//	defer s.Close(logsink.FlushLimit)
//	log := s.Logger(slog.LevelInfo, false)
//
// The rules:
//
//   - A line is put into a bounded buffer and never waited for. One goroutine, the
//     sink's own, writes.
//   - What has no room, or can't be written, is counted; when there is a reader
//     again, one line says how many are missing, where they would have stood.
//   - A reader that has gone may come back: every line is tried. The program must
//     not die of SIGPIPE meanwhile, which its main sees to.
//   - Close waits for the last words, but not for ever.
//
// What a crash of the program itself leaves in the buffer is lost; the goroutine
// has usually written it microseconds after it came. The runtime writes a panic
// past the sink.
package logsink
