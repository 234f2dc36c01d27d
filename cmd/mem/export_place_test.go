package main

// ProjectIn names the project of a folder of the disk.
var ProjectIn = projectIn
