package transcript

// ScanValue gives the end of the JSON value at the start of b, or -1.
func ScanValue(b []byte) int { return skipValue(b, 0, 0) }

// WindowBytes is how much text is held back.
const WindowBytes = windowBytes

// ParseEmbedded is ParseSchema for the schemas of our own formats.
var ParseEmbedded = parseSchema

// Reserved are the names of our own formats.
var Reserved = reserved
