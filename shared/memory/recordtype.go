package memory

// RecordType is the `type` field that a record has in the log.
func (*Source) RecordType() string { return TypeSource }

// RecordType is the `type` field that a record has in the log.
func (*Chunk) RecordType() string { return TypeChunk }

// RecordType is the `type` field that a record has in the log.
func (*Admit) RecordType() string { return TypeAdmit }

// RecordType is the `type` field that a record has in the log.
func (*Run) RecordType() string { return TypeRun }

// RecordType is the `type` field that a record has in the log.
func (*Gate) RecordType() string { return TypeGate }

// RecordType is the `type` field that a record has in the log.
func (*Evidence) RecordType() string { return TypeEvidence }

// RecordType is the `type` field that a record has in the log.
func (*Memory) RecordType() string { return TypeMemory }

// RecordType is the `type` field that a record has in the log.
func (*RunEnd) RecordType() string { return TypeRunEnd }

// RecordType is the `type` field that a record has in the log.
func (*Tombstone) RecordType() string { return TypeTombstone }

// RecordType is the record's `type` field.
func (*Label) RecordType() string { return TypeLabel }
