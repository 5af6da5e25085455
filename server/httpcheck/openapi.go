package httpcheck

import _ "embed"

// openAPI describes the port.
//
//go:embed openapi.json
var openAPI []byte
