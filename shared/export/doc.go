// Package export writes gate decisions as Parquet files for training (brief K5, P19).
//
// Invariants:
//
//   - Equal logs, labels, question files and options give equal bytes: no time of
//     day, no random number and no version of a library stands in a file. What the
//     bytes follow from stands in the manifest and is hashed to the export id.
//   - A trajectory is whole or not there: the gates of a part are rows once the run
//     that ends it has ended, and belong to the day (UTC) of that end.
//   - A row that no trainer should see is flagged in gates.parquet and stands in no
//     trainer's file; each reason is counted. A project that does not consent
//     (export: false) and a text that was erased are in no file at all, and counted.
//   - Text is redacted once more, by the newest rules, as it is written.
//   - Memory is bounded by one trajectory, one page a column, and 80 bytes a label; the
//     pages of a row group wait in temporary files beside the export.
//   - A file is seen whole under its name or not at all; the manifest is written
//     behind the files and the marker behind the manifest.
//
// The files, their columns and the table of what is left out stand in docs/FORMATS.md;
// how to train with them in docs/TRAINING.md.
//
// The package decides nothing, changes nothing in the log, and asks no model: rewards
// and advantages are computed here (reward.go) from decisions and labels.
package export
