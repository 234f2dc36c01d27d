package query

var Excerpts = excerpts

// Everywhere is what a sentence that several questions keep is replaced by.
var Everywhere = everywhere
