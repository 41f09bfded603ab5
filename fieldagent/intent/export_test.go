package intent

// PinCode is what an error of the pins means.
var PinCode = pinCode

// PinErrors are the errors that mean something by themselves.
func PinErrors() (list []error) {
	for _, e := range pinErrors() {
		list = append(list, e.is)
	}
	return list
}
