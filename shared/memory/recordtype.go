package memory

// RecordType is the `type` field that a record of this Go type has in the log.
// It is what lets shared/eventlog take exactly the records that belong there.

func (*Source) RecordType() string   { return TypeSource }
func (*Chunk) RecordType() string    { return TypeChunk }
func (*Admit) RecordType() string    { return TypeAdmit }
func (*Run) RecordType() string      { return TypeRun }
func (*Gate) RecordType() string     { return TypeGate }
func (*Evidence) RecordType() string { return TypeEvidence }
func (*Memory) RecordType() string   { return TypeMemory }
func (*RunEnd) RecordType() string   { return TypeRunEnd }
