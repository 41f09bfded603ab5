package gpio

import (
	"testing"
	"unsafe"
)

// The layouts are the kernel's, on every machine: these numbers are those of its
// header, and the sizes are part of the ioctl numbers as well.
func TestLayoutsAreTheKernels(t *testing.T) {
	var (
		i abiLineInfo
		c abiConfig
		a abiConfigAttr
		r abiRequest
	)
	for name, n := range map[string][2]uintptr{
		"chip info":          {unsafe.Sizeof(abiChipInfo{}), 68},
		"attribute":          {unsafe.Sizeof(abiAttr{}), 16},
		"attribute value":    {unsafe.Offsetof(a.attr.value), 8},
		"line info":          {unsafe.Sizeof(i), 256},
		"line info offset":   {unsafe.Offsetof(i.offset), 64},
		"line info flags":    {unsafe.Offsetof(i.flags), 72},
		"line info attrs":    {unsafe.Offsetof(i.attrs), 80},
		"config attribute":   {unsafe.Sizeof(a), 24},
		"config attr mask":   {unsafe.Offsetof(a.mask), 16},
		"config":             {unsafe.Sizeof(c), 272},
		"config count":       {unsafe.Offsetof(c.attrCount), 8},
		"config attrs":       {unsafe.Offsetof(c.attrs), 32},
		"request":            {unsafe.Sizeof(r), 592},
		"request consumer":   {unsafe.Offsetof(r.consumer), 256},
		"request config":     {unsafe.Offsetof(r.config), 288},
		"request lines":      {unsafe.Offsetof(r.lines), 560},
		"request buffer":     {unsafe.Offsetof(r.eventBuffer), 564},
		"request descriptor": {unsafe.Offsetof(r.fd), 588},
		"values":             {unsafe.Sizeof(abiValues{}), 16},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d, want %d", name, n[0], n[1])
		}
	}
	// direction << 30 | size << 16 | type << 8 | number
	number := func(dir, size, n uintptr) uint { return uint(dir<<30 | size<<16 | 0xB4<<8 | n) }
	for name, n := range map[string][2]uint{
		"chip info":  {ioChipInfo, number(2, unsafe.Sizeof(abiChipInfo{}), 0x01)},
		"line info":  {ioLineInfo, number(3, unsafe.Sizeof(i), 0x05)},
		"request":    {ioGetLine, number(3, unsafe.Sizeof(r), 0x07)},
		"config":     {ioSetConfig, number(3, unsafe.Sizeof(c), 0x0D)},
		"get values": {ioGetValues, number(3, unsafe.Sizeof(abiValues{}), 0x0E)},
		"set values": {ioSetValues, number(3, unsafe.Sizeof(abiValues{}), 0x0F)},
	} {
		if n[0] != n[1] {
			t.Errorf("ioctl %s: %#x, want %#x", name, n[0], n[1])
		}
	}
}
