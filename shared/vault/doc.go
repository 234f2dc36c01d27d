// Package vault renders what a project's log holds as a folder of Markdown pages
// that people read in Obsidian or any editor (brief P11):
//
//	shop/index.md                 the synthesis (L2) and the list of questions
//	shop/decisions.md             one question's memory (L1), what was replaced, provenance, Notes
//	shop/timeline.md              statements by day
//	shop/evidence/1a2b3c4d.md     one statement (L0), where evidence pages are asked for
//	shop/orphans/decisions.md     Notes of a question that is asked no more
//
// A page is front matter, the rendered part between the lines of
// shared/derived, and people's own region:
//
//	---
//	title: "What was decided, and why?"
//	…
//	generated_by: mneme
//	---
//
//	<!-- mneme:derived kind=vault -->
//
//	# What was decided, and why?
//
//	- Retries stop after 5 attempts. [[#^p-1a2b3c4d|2026-03-02]] ^1a2b3c4d
//	…
//	%% What stands under Notes is yours … %%
//	<!-- /mneme:derived -->
//
//	## Notes
//	whatever people write, to the end of the file
//
// Invariant: a page is a function of the log alone. Nothing in it depends on the
// clock, on the machine or on the order in which events arrived, so that a dropped
// vault comes back byte for byte; `updated` is the effective source time of the
// newest statement on the page. No text of a transcript can make a link, a tag, an
// embed, a heading or a Notes region: see Inline.
//
// Render, Split, Check, Regions and Region.Edit are pure; Reader reads the log. The package
// writes nothing.
package vault
