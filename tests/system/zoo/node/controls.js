// Programs of Node.js that are well; the first argument says which.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { execFileSync, execSync } = require('child_process');
const fs = require('fs');
const http = require('http');
const readline = require('readline');

function say() {
  fs.writeSync(1, 'ready\n');
}

function countPrimes() {
  let count = 0;
  for (let n = 2;; ++n) {
    let isPrime = true;
    for (let d = 2; d * d <= n; ++d) {
      if (n % d === 0) { isPrime = false; break; }
    }
    if (isPrime) ++count;
  }
}

function waitForTime(milliseconds) {
  const end = Date.now() + milliseconds;
  while (Date.now() < end) {
  }
}

async function work() {
  let sum = 0;
  for (let i = 0;; ++i) sum += await Promise.resolve(i);
}

function parse() {
  const text = JSON.stringify(Array.from({ length: 1000 }, (_, i) => ({ i, text: 'x'.repeat(i) })));
  for (;;) JSON.parse(text);
}

function sort() {
  for (;;) Array.from({ length: 10000 }, () => Math.random()).sort();
}

function serve() {
  http.createServer((request, response) => response.end('well')).listen(0, '127.0.0.1');
}

function words() {
  return new Int32Array(new SharedArrayBuffer(64));
}

function start(job, shared) {
  return new Worker(__filename, { argv: process.argv.slice(2), workerData: { job, shared } });
}

const jobs = {
  'serve': () => { serve(); say(); },
  'interval': () => { setInterval(() => 0, 100); say(); },
  'long-timer': () => { setTimeout(() => 0, 3600000); say(); },
  'primes': () => { say(); countPrimes(); },
  'wait-for-time': () => { say(); waitForTime(3600000); },
  'promises': () => { say(); work(); },
  'parse': () => { say(); parse(); },
  'sort': () => { say(); sort(); },
  'regexp': () => { say(); /^(a+)+$/.test('a'.repeat(60) + 'b'); },
  'immediate': () => { say(); let n = 0; (function next() { ++n; setImmediate(next); })(); },
  'worker-pool': () => { serve(); start('messages', null); start('messages', null); setTimeout(say, 300); },
  'worker-of-timer': () => { const w = words(); start('wait', w); setTimeout(() => Atomics.notify(w, 0), 3600000); setTimeout(say, 300); },
  'worker-of-server': () => {
    const w = words();
    start('wait', w);
    http.createServer((request, response) => { Atomics.notify(w, 0); response.end(); }).listen(0, '127.0.0.1');
    setTimeout(say, 300);
  },
  'worker-of-signal': () => { const w = words(); start('wait', w); process.on('SIGTERM', () => Atomics.notify(w, 0)); serve(); setTimeout(say, 300); },
  'spin-of-timer': () => { const w = words(); start('spin', w); setTimeout(() => Atomics.store(w, 0, 1), 3600000); setTimeout(say, 300); },
  'spin-of-server': () => {
    const w = words();
    start('spin', w);
    http.createServer((request, response) => { Atomics.store(w, 0, 1); response.end(); }).listen(0, '127.0.0.1');
    setTimeout(say, 300);
  },
  'wait-with-limit': () => { say(); for (const w = words();;) Atomics.wait(w, 0, 0, 200); },
  'sleep': () => { say(); execSync('sleep 3600'); },
  'input': () => { readline.createInterface({ input: process.stdin }).on('line', () => 0); say(); },
  'read-input': () => { say(); fs.readSync(0, Buffer.alloc(10)); },
  'watch': () => { fs.watch('.', () => 0); say(); },
  'command-reads-input': () => { say(); execFileSync('cat', { stdio: 'inherit' }); },
};

if (isMainThread) {
  jobs[process.argv[2]]();
} else {
  const { job, shared } = workerData;
  if (job === 'messages') parentPort.on('message', () => 0);
  if (job === 'wait') Atomics.wait(shared, 0, 0);
  if (job === 'spin') while (Atomics.load(shared, 0) === 0) { }
}
