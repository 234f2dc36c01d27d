package transcript

// newDocument is the parser of a format whose file may be JSON Lines, one JSON
// object or an array; nil for other formats.
func (r *Reader) newDocument() parser {
	if r.schema != nil {
		return r.described(r.schema)
	}
	switch r.format {
	case FormatTRL:
		return newTRL(r)
	case FormatCline:
		return newCline(r)
	case FormatOpenCode:
		return newOpenCode(r)
	case FormatChatGPT:
		return newChatGPT(r)
	}
	for i := range builtin() {
		if s := &builtin()[i]; s.Name == r.format {
			return r.described(s)
		}
	}
	return nil
}

func (r *Reader) described(s *Schema) parser {
	return newValues(r, newSchemaReader(r, s), func(b []byte, ms []member) bool { return s.matches(r.base, b, ms) })
}
