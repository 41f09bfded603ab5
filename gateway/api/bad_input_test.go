package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/api"
)

// TestBadInput: each kind of bad input is refused with its code and place, and
// nothing is queued or harmed by it.
func TestBadInput(t *testing.T) {
	good := `{"task_id":"x","intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1}}`
	with := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	s := newSite(t, api.Options{})
	s.submit(yamlWith("before", "pump-1"))
	for name, tc := range map[string]struct {
		body, kind string
		status     int
		code       string // empty: any
		field      string // empty: any
	}{
		"A6 empty":              {"", "", 400, "empty", ""},
		"A6 empty JSON":         {"", "application/json", 400, "empty", ""},
		"white space":           {" \r\n\t", "", 400, "empty", ""},
		"broken":                {`{"intent":`, "", 400, "syntax", ""},
		"YAML as JSON":          {"intent: x\nnode: y\n", "application/json", 400, "syntax", ""},
		"A17 object text":       {"[object Object]", "application/json", 400, "", ""},
		"array":                 {"[1]", "", 400, "", ""},
		"number":                {"1", "application/json", 400, "wrong_type", ""},
		"trailing garbage":      {good + "x", "", 400, "syntax", ""},
		"binary":                {"\x00\x01\x02", "application/octet-stream", 400, "encoding", ""},
		"A15 UTF-16":            {"\xff\xfe{\x00", "", 400, "encoding", ""},
		"invalid UTF-8":         {with("pump-1", "pump\xff"), "", 400, "encoding", ""},
		"escape":                {with("pump-1", "pump\x1b[2J"), "", 400, "encoding", ""},
		"unknown field":         {with(`"intent"`, `"ttll":"3s","intent"`), "", 400, "unknown_field", "ttll"},
		"duplicate key":         {with(`"intent"`, `"intent":"gpio.read","intent"`), "", 400, "duplicate", ""},
		"missing intent":        {with(`"intent":"gpio.write",`, ""), "", 400, "missing", "intent"},
		"wrong type":            {with(`"pump-1"`, "7"), "", 400, "wrong_type", "node"},
		"null":                  {with(`"pump-1"`, "null"), "", 400, "", "node"},
		"A3 number as text":     {with(`"intent"`, `"timeout":"30","intent"`), "", 400, "", "timeout"},
		"negative ttl":          {with(`"intent"`, `"ttl":"-5s","intent"`), "", 400, "out_of_range", "ttl"},
		"A11 NaN":               {with(`"level":1`, `"level":NaN`), "", 400, "syntax", ""},
		"A11 huge":              {with(`"level":1`, `"level":1e999`), "", 400, "", "args.level"},
		"64-bit integer":        {with(`"level":1`, `"level":9223372036854775808`), "", 400, "", "args.level"},
		"A12 seconds":           {with(`"intent"`, `"not_after":1712345678,"intent"`), "", 400, "out_of_range", "not_after"},
		"contradiction":         {with(`"intent"`, `"ttl":"3s","not_after":"2030-01-01T00:00:00Z","intent"`), "", 400, "contradicts", ""},
		"bad pin":               {with("GPIO17", "GPIO/17"), "", 400, "", "args.pin"},
		"bad task id":           {with(`"x"`, `"x/#"`), "", 400, "", "task_id"},
		"bad node":              {with("pump-1", "+"), "", 400, "", "node"},
		"deep nesting":          {strings.Repeat("[", 10_000), "", 400, "", ""},
		"unsupported":           {with(`"intent"`, `"depends_on":["a"],"intent"`), "", 400, "unsupported", "depends_on"},
		"unknown node label":    {"intent: collect_metrics\ntarget_selector: {type: label, key: a, value: b}\n", "", 422, "unknown_node", "target_selector"},
		"conflicting task id":   {yamlWith("before", "pump-2"), "", 409, "conflict", "task_id"},
		"64 KiB and one":        {good + strings.Repeat(" ", api.MaxBody+1-len(good)), "", 413, "too_large", ""},
		"1 MiB":                 {with("GPIO17", strings.Repeat("a", 1<<20)), "", 413, "too_large", ""},
		"picture":               {good, "image/png", 415, "unsupported_media_type", ""},
		"multipart":             {good, "multipart/form-data; boundary=x", 415, "unsupported_media_type", ""},
		"content type nonsense": {good, "application/json; ;", 415, "unsupported_media_type", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sub := *s
			sub.t = t
			header := []string{}
			if tc.kind != "" {
				header = []string{"Content-Type", tc.kind}
			}
			f := sub.call("POST", "/v1/tasks", tc.body, header...).fault(tc.status)
			if tc.code != "" && f.Code != tc.code || tc.field != "" && f.Field != tc.field {
				t.Errorf("fault %+v, want code %q, field %q", f, tc.code, tc.field)
			}
			if tc.status == 400 && f.Code != "empty" && f.Code != "missing" && f.Line == 0 {
				t.Errorf("no place in %+v", f)
			}
		})
	}
	var list struct{ Tasks []struct{ State string } }
	s.call("GET", "/v1/tasks", "").want(200, &list)
	if len(list.Tasks) != 1 || list.Tasks[0].State != "PENDING" {
		t.Errorf("tasks %+v", list.Tasks)
	}
}

func TestEncodedBodyIsRefused(t *testing.T) {
	s := newSite(t, api.Options{})
	if f := s.call("POST", "/v1/tasks", writeTask, "Content-Encoding", "gzip").fault(415); f.Code != "unsupported_encoding" {
		t.Errorf("fault %+v", f)
	}
}

func TestGoodInput(t *testing.T) {
	s := newSite(t, api.Options{})
	for name, body := range map[string]string{
		"A1-zero":  `{"intent":"gpio.write","node":"n","args":{"pin":"GPIO17","level":0}}`,
		"A7-crlf":  "{\"intent\":\"gpio.read\",\r\n\"node\":\"n\",\"args\":{\"pin\":\"GPIO17\"}}\r\n",
		"A15-bom":  "\ufeff" + `{"intent":"gpio.read","node":"n","args":{"pin":"GPIO17"}}`,
		"full":     writeTask + strings.Repeat(" ", api.MaxBody-len(writeTask)),
		"curl-d":   writeTask,
		"node-red": writeTask,
	} {
		kind := map[string]string{"curl-d": "application/x-www-form-urlencoded", "node-red": "application/json; charset=utf-8"}[name]
		if sub := s.submit(body, "Idempotency-Key", name, "Content-Type", kind); sub.TaskID != name {
			t.Errorf("%s: %+v", name, sub)
		}
	}
}

func TestBadReasons(t *testing.T) {
	s := newSite(t, api.Options{})
	s.submit(yamlWith("c", "away"))
	for body, want := range map[string]fault{
		`[]`:                             {Code: "syntax", Line: 1, Column: 2},
		`{"reason":1}`:                   {Code: "wrong_type", Field: "reason"},
		`{"reason":null}`:                {Code: "wrong_type", Field: "reason"},
		`{"reason":{"a":1}}`:             {Code: "wrong_type", Field: "reason"},
		`{"Reason":"x"}`:                 {Code: "unknown_field", Field: "Reason"},
		`{"reason":"a","reason":"b"}`:    {Code: "duplicate", Field: "reason"},
		`{"reason":"a"} x`:               {Code: "syntax"},
		`{"reason":"a"`:                  {Code: "syntax"},
		"{\"reason\":\n\"a\xff\"}":       {Code: "encoding"},
		`{"reason"`:                      {Code: "syntax", Field: "reason"},
		`{"reason":"` + long(300) + `"}`: {Code: "too_large", Field: "reason"},
		`nonsense`:                       {Code: "syntax", Line: 1},
	} {
		f := s.call("POST", "/v1/tasks/c/cancel", body).fault(400)
		if f.Code != want.Code || f.Field != want.Field || f.Line == 0 || f.Hint == "" {
			t.Errorf("%s: %+v, want %+v", body, f, want)
		}
	}
	s.call("POST", "/v1/tasks/c/cancel", "reason: x", "Content-Type", "application/yaml").fault(415)
	s.call("POST", "/v1/tasks/c/cancel", strings.Repeat(" ", api.MaxBody+1)).fault(413)
	s.call("POST", "/v1/tasks/c/cancel", `{}`, "Content-Type", "application/json").want(200, nil)
}

func long(n int) string { return strings.Repeat("r", n) }

func TestBadParameters(t *testing.T) {
	s := newSite(t, api.Options{})
	for path, want := range map[string]fault{
		"/v1/tasks?limit=0":                     {Code: "bad_value", Field: "limit"},
		"/v1/tasks?limit=501":                   {Code: "bad_value", Field: "limit"},
		"/v1/tasks?limit=ten":                   {Code: "bad_value", Field: "limit"},
		"/v1/tasks?limit=":                      {Code: "bad_value", Field: "limit"},
		"/v1/tasks?limit=-1":                    {Code: "bad_value", Field: "limit"},
		"/v1/tasks?limit=1&limit=2":             {Code: "duplicate", Field: "limit"},
		"/v1/tasks?before=99999999999999999999": {Code: "bad_value", Field: "before"},
		"/v1/tasks?state=failed":                {Code: "bad_value", Field: "state"},
		"/v1/tasks?state=":                      {Code: "bad_value", Field: "state"},
		"/v1/tasks?stat=FAILED":                 {Code: "unknown_field", Field: "stat"},
		"/v1/tasks?a=%zz":                       {Code: "bad_value"},
		"/v1/tasks/a%20b":                       {Code: "bad_value", Field: "task_id"},
		"/v1/tasks/" + long(200):                {Code: "bad_value", Field: "task_id"},
		"/v1/tasks/x?wait=1":                    {Code: "unknown_field", Field: "wait"},
		"/v1/nodes?x=1":                         {Code: "unknown_field", Field: "x"},
		"/v1/nodes/a%2Fb":                       {Code: "bad_value", Field: "node"},
		"/v1/nodes/n?x=1":                       {Code: "unknown_field", Field: "x"},
		"/v1/deadletters?after=x":               {Code: "bad_value", Field: "after"},
		"/v1/deadletters?limit=0":               {Code: "bad_value", Field: "limit"},
		"/v1/deadletters?before=1":              {Code: "unknown_field", Field: "before"},
		"/v1/instructions/x/timeline":           {Code: "bad_value", Field: "instruction"},
		"/v1/instructions/-1/timeline":          {Code: "bad_value", Field: "instruction"},
		"/v1/instructions/default-1740821400010-1-ffff/timeline": {Code: "bad_value", Field: "instruction"},
		"/v1/instructions/1/timeline?x=1":                        {Code: "unknown_field", Field: "x"},
	} {
		f := s.call("GET", path, "").fault(400)
		if f.Code != want.Code || f.Field != want.Field {
			t.Errorf("%s: %+v, want %+v", path, f, want)
		}
	}
	s.call("POST", "/v1/tasks?dry_run=1", writeTask).fault(400)
}

// TestM1_MarkupIsData: text of any origin leaves escaped, and no answer is a page.
func TestM1_MarkupIsData(t *testing.T) {
	s := newSite(t, api.Options{})
	const evil = "<script>alert(1)</script>&\u2028"
	s.g.Garbage("task", evil, evil, []byte(evil))
	s.submit(fmt.Sprintf(`{"task_id":"m","intent":"gpio.read","node":"n","args":{"pin":"GPIO17"},"metadata":{"k":%q}}`, "<img src=x>&"))
	for _, path := range []string{"/v1/deadletters", "/v1/tasks/m", "/v1/tasks?state=<b>", "/<script>", "/v1/tasks/%3Cb%3E"} {
		a := s.call("GET", path, "")
		if strings.ContainsAny(string(a.body), "<>&\u2028") || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s %s", path, a.header.Get("Content-Type"), a.body)
		}
	}
	var v struct {
		DeadLetters []struct{ From, Reason, Text string } `json:"dead_letters"`
	}
	a := s.call("GET", "/v1/deadletters", "")
	if err := json.Unmarshal(a.body, &v); err != nil || v.DeadLetters[0].Text != evil || v.DeadLetters[0].From != evil {
		t.Errorf("%v %+v", err, v)
	}
}
