// Package script reads the command lines of the test scripts and refuses what it
// does not know. A key that nobody reads makes a script say something that it does
// not test, and its expected output is then written by mistake.
//
// A Language is made of one line for each command, which is its documentation, its
// grammar and its error message:
//
//	submit [dup] node=LIST [ttl=D] [count=N]
//	advance D [NODE...]
//	narrowband NODE up|down
//
// A word in capitals is of that kind, other words stand for themselves; what is in
// brackets may be left out; three dots allow any number. Arguments with a name may
// stand anywhere, words only in their order. What a kind accepts is up to whoever
// makes the Language; kinds that are not declared accept any text but none.
package script
