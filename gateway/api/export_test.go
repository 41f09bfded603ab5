package api

// Routes is the table of routes as "METHOD path".
func Routes() []string {
	var list []string
	for _, rt := range routes() {
		list = append(list, rt.method+" "+rt.path)
	}
	return list
}

// Limits that tests go up to.
const (
	MaxBody    = maxBody
	MaxAtOnce  = maxAtOnce
	MaxScan    = maxScan
	MaxReason  = maxReason
	MaxActor   = maxActor
	ReadAtOnce = readAtOnce
	ExportPage = exportPage
)
