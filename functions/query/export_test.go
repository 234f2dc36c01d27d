package query

var Excerpts = excerpts
