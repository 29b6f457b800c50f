package fabric

// machine is this architecture's name in Debian's directories.
const machine = "x86_64"
