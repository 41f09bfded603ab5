// Package deps holds the module's requirements while its rooms are being built.
package deps

import (
	_ "github.com/cockroachdb/pebble/v2"
	_ "github.com/cockroachdb/pebble/v2/vfs/errorfs"
	_ "github.com/eclipse/paho.mqtt.golang"
	_ "github.com/fxamacker/cbor/v2"
	_ "github.com/getkin/kin-openapi/openapi3"
	_ "github.com/getkin/kin-openapi/openapi3filter"
	_ "github.com/getkin/kin-openapi/routers/gorillamux"
	_ "github.com/gorilla/websocket"
	_ "github.com/mochi-mqtt/server/v2"
	_ "github.com/mochi-mqtt/server/v2/listeners"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/crypto/bcrypt"
	_ "golang.org/x/sys/unix"
	_ "periph.io/x/conn/v3/gpio"
	_ "periph.io/x/host/v3"
)
