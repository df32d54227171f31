// Programs of Node.js that hang; the first argument says which. They say "ready" just before.
'use strict';
const { Worker, isMainThread, workerData } = require('worker_threads');
const { execFileSync, execSync } = require('child_process');
const fs = require('fs');
const http = require('http');

let isReady = false;

function say() {
  fs.writeSync(1, 'ready\n');
}

function waitForReady() {
  while (!isReady) {
  }
}

function becomeReadyLater() {
  setTimeout(() => { isReady = true; }, 100);
}

async function pollForReady() {
  while (!isReady) {
    await null;
  }
}

function tickUntilReady() {
  if (!isReady) process.nextTick(tickUntilReady);
}

function waitTurn(words, index) {
  Atomics.wait(words, index, 0);
}

function waitForWord(words, own, other) {
  while (Atomics.load(words, other) === 0) {
  }
  Atomics.store(words, own, 1);
}

function loadConfig() {
  execSync('mkfifo config.fifo');
  say();
  return fs.readFileSync('config.fifo');
}

function readByCommand() {
  execSync('mkfifo command.fifo');
  say();
  return execFileSync('cat', ['command.fifo']);
}

function serve() {
  http.createServer((request, response) => response.end('well')).listen(0, '127.0.0.1');
}

function startWorker(job, words, index) {
  return new Worker(__filename, { argv: process.argv.slice(2), workerData: { job, words, index } });
}

function sharedWords() {
  return new Int32Array(new SharedArrayBuffer(64));
}

class Queue {
  constructor() { this.items = []; }
  take() {
    while (this.items.length === 0) {
    }
    return this.items.pop();
  }
}

const jobs = {
  'flag': () => { becomeReadyLater(); say(); waitForReady(); },
  'flag-in-timer': () => { becomeReadyLater(); setTimeout(() => { say(); waitForReady(); }, 20); },
  'queue': () => { const queue = new Queue(); setTimeout(() => queue.items.push(1), 50); say(); queue.take(); },
  'await': () => { becomeReadyLater(); say(); pollForReady(); },
  'ticks': () => { becomeReadyLater(); say(); tickUntilReady(); },
  'atomics': () => { say(); waitTurn(sharedWords(), 0); },
  'workers-wait': () => { const w = sharedWords(); startWorker('wait', w, 0); startWorker('wait', w, 1); setTimeout(say, 300); },
  'worker-spins': () => { serve(); startWorker('spin', sharedWords(), 0); setTimeout(say, 300); },
  'workers-spin': () => { const w = sharedWords(); startWorker('spin-crosswise', w, 0); startWorker('spin-crosswise', w, 1); setTimeout(say, 300); },
  'fifo': () => loadConfig(),
  'command': () => readByCommand(),
  'server-and-command': () => { serve(); setTimeout(readByCommand, 50); },
};

if (isMainThread) {
  jobs[process.argv[2]]();
} else {
  const { job, words, index } = workerData;
  if (job === 'wait') waitTurn(words, index);
  if (job === 'spin') waitForReady();
  if (job === 'spin-crosswise') waitForWord(words, index, 1 - index);
}
