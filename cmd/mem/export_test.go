package main

// Visible is visible, for tests.
var Visible = visible
