// Package lab is the board lab.
package lab
