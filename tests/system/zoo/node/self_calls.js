// A server that asks itself: node self_calls.js NAME.
const http = require('http');
const {execSync, spawn, spawnSync} = require('child_process');

function ask(port, path) {
  return execSync(`curl -s http://127.0.0.1:${port}/${path}`);
}

function askBySpawn(port, path) {
  return spawnSync('curl', ['-s', `http://127.0.0.1:${port}/${path}`]);
}

function serve(handle) {
  const server = http.createServer((request, response) => handle(server.address().port, request, response));
  server.listen(0, '127.0.0.1', () => {
    spawn('curl', ['-s', `http://127.0.0.1:${server.address().port}/outer`], {stdio: 'ignore'});
    console.log('ready');
  });
}

const programs = {
  exec: () => serve((port, request, response) => {
    if (request.url === '/outer') ask(port, 'inner');
    response.end();
  }),
  spawn: () => serve((port, request, response) => {
    if (request.url === '/outer') askBySpawn(port, 'inner');
    response.end();
  }),
  // What only looks so: it is answered after a while, by itself or by another process.
  async: () => serve((port, request, response) => {
    if (request.url === '/outer')
      http.get(`http://127.0.0.1:${port}/inner`, () => response.end());
    else
      setTimeout(() => response.end(), 600000);
  }),
  other: () => {
    const other = spawn(process.execPath, [__filename, 'slow'], {stdio: ['ignore', 'pipe', 'ignore']});
    other.stdout.on('data', data => serve((_, request, response) => {
      ask(parseInt(data.toString()), 'inner');
      response.end();
    }));
  },
  slow: () => {
    const server = http.createServer(() => setTimeout(() => {}, 600000));
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));
  },
};

programs[process.argv[2]]();
