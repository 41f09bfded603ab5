package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What the gateway does not list is counted: nobody may take the list for all.
func TestWhatIsOwedAndNotListedIsTold(t *testing.T) {
	for more, told := range map[int]bool{0: false, 3: true} {
		s := &server{http: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"owed":[{"node":"away","task_id":"t","instruction":"i","since":"2025-03-01T09:30:00Z","count":2,"driven":false,"reason":"the node is away"}],"more":%d}`, more)
		}))}
		code, out, errs := tool(t, s, "", "safe", "--owed")
		if code != 0 || !strings.Contains(out, "away") || strings.Contains(errs, "there are 3 more") != told {
			t.Errorf("%d more: exit %d\n%s%s", more, code, out, errs)
		}
		s.http.Close()
	}
}
