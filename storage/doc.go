package storage

import _ "github.com/cockroachdb/pebble/v2"
