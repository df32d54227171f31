// Programs of Node.js with a command that waits for their word, as they do for its; the first argument says which.
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');

const command = spawn('wc', ['-c']);
command.stdout.on('data', text => fs.writeSync(1, text));
command.stdin.write('hello');

function end() {
  command.stdin.end();
}

({
  'interrupt': () => process.on('SIGINT', end),
  'terminate': () => process.on('SIGTERM', end),
  'user': () => process.on('SIGUSR2', end),
  'nobody': () => 0,  // a hang: nobody ends the command's input
})[process.argv[2]]();
fs.writeSync(1, 'ready\n');
