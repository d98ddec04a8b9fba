// Runs one of the small programs below again and again, times it, and prints what it gave as a line of JSON:
//
//     node bench.js NAME --target-ms MS [--warm-up-ms MS]
//     node bench.js NAME --operations N
//     node bench.js --describe
//
// The programs and their results are those of bench.pl.
'use strict';
const fs = require('fs');

let state = 1;

function chance() {
  // Below 2^53, so exact.
  state = (state * 1664525 + 1013904223) % 4294967296;
  return Math.floor(state / 65536);
}

const syllables = ['ka', 'lo', 'mi', 'ne', 'ru', 'sa', 'ti', 'vo', 'zu', 'be'];

function word() {
  const n = chance() % 700;
  return syllables[n % 10] + syllables[Math.floor(n / 10) % 10] + syllables[Math.floor(n / 100)];
}

function words(n) {
  return Array.from({ length: n }, word);
}

function measurements(n) {
  const lines = [];
  for (let i = 0; i <= n; i++) {
    const [first, second] = [chance() / 65536, chance() / 65536];
    lines.push(`${i} ${first.toFixed(6)} ${second.toFixed(6)}\n`);
  }
  return lines;
}

function document() {
  let rows = '';
  for (let i = 1; i <= 60; i++) {
    const [name, title, text] = words(3);
    rows += `<tr class="row" id="r${i}"><td><a href="/${name}/${i}" title="${title}">${text}</a></td></tr>\n`;
    if (i % 5 === 0) rows += `<!-- ${name} -->\n`;
  }
  return `<html>\n<body>\n<table>\n${rows}</table>\n</body>\n</html>\n`;
}

function logLines(n) {
  const lines = [];
  for (let i = 1; i <= n; i++) {
    const [user, host] = words(2);
    const at = i % 3 ? '@' : ' at ';
    const [number, size] = [chance() % 100, chance()];
    lines.push(`${user}${i}${at}${host}${number}.org GET /${host} ${size}\n`);
  }
  return lines;
}

function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

const programs = {
  fib: () => () => String(fib(20)),
  movavg: () => {
    const lines = measurements(3000);
    return () => {
      const first = [], second = [];
      let number = 0, printed = 0, last = '';
      for (const line of lines) {
        ++number;
        const [hr, inp, outp] = line.trim().split(' ').map(Number);
        if (number <= 60) {
          first.unshift(inp);
          second.unshift(outp);
          continue;
        }
        first.pop();
        second.pop();
        first.unshift(inp);
        second.unshift(outp);
        if (number % 10 === 0) {
          let sumi = 0, sumo = 0;
          for (let i = 1; i < 21; i++) {
            sumi += first[i] * (20 / i);
            sumo += second[i] * (20 / i);
          }
          last = `${hr.toFixed(6)} ${(sumi / 60).toFixed(6)} ${(sumo / 60).toFixed(6)}`;
          ++printed;
        }
      }
      return `${printed} lines, ${last}`;
    };
  },
  wordcount: () => {
    const text = words(4000).join(' ');
    return () => {
      const count = new Map();
      let total = 0;
      for (const one of text.split(' ')) {
        count.set(one, (count.get(one) || 0) + 1);
        ++total;
      }
      const order = (a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1);
      const [top, times] = [...count].sort(order)[0];
      return `${total} words, ${count.size} different, ${top} ${times}`;
    };
  },
  regex: () => {
    const text = logLines(600).join('');
    return () => {
      let found = 0, sum = 0;
      for (const match of text.matchAll(/([a-z]+)([0-9]+)@([a-z]+)([0-9]+)\.([a-z]+)/g)) {
        ++found;
        sum += Number(match[2]) + Number(match[4]) + match[1].length + match[3].length;
      }
      return `${found} found, ${sum}`;
    };
  },
  hash: () => {
    const keys = Array.from({ length: 10000 }, () => 'k' + (chance() % 20000));
    return () => {
      const seen = new Map();
      let hits = 0;
      for (let i = 0; i < 5000; i++) seen.set(keys[i], (seen.get(keys[i]) || 0) + 1);
      for (let i = 5000; i < 10000; i++) if (seen.has(keys[i])) ++hits;
      return `${seen.size} different, ${hits} found`;
    };
  },
  sort: () => {
    const numbers = [];
    for (let i = 0; i < 3000; i++) numbers.push(chance() * 65536 + chance());
    const names = words(2000);
    return () => {
      const ordered = [...numbers].sort((a, b) => a - b);
      const byName = [...names].sort();
      let sum = 0, at = 0;
      for (const value of ordered) sum = (sum + ++at * (value % 1000)) % 1000003;
      return `${sum} ${byName[0]} ${byName[1000]} ${byName[byName.length - 1]}`;
    };
  },
  string: () => () => {
    let text = '';
    for (let i = 0; i < 4000; i++) text += i + ',';
    const parts = text.split(',');
    parts.pop();
    const joined = parts.reverse().join('-').toUpperCase().replace(/7/g, 'seven');
    return `${joined.length} ${joined.slice(0, 20)}`;
  },
  html: () => {
    const text = document();
    const comment = /<!--.*?-->/sy, end = /<\/([a-z]+)>/y, tag = /<([a-z]+)([^>]*)>/y, plain = /[^<]+/y;
    return () => {
      let at = 0, tags = 0, ends = 0, attributes = 0, comments = 0, bytes = 0, match;
      const next = (pattern) => {
        pattern.lastIndex = at;
        match = pattern.exec(text);
        if (match) at = pattern.lastIndex;
        return match;
      };
      while (at < text.length) {
        if (next(comment)) ++comments;
        else if (next(end)) ++ends;
        else if (next(tag)) {
          ++tags;
          for (const _ of match[2].matchAll(/([a-z]+)="([^"]*)"/g)) ++attributes;
        } else if (next(plain)) bytes += match[0].length;
        else throw new Error('no token');
      }
      return `${tags} tags, ${ends} ends, ${attributes} attributes, ${comments} comments, ${bytes} bytes`;
    };
  },
};

function describe() {
  const variables = process.config.variables;
  console.log(JSON.stringify({
    path: fs.readlinkSync('/proc/self/exe'),
    version: process.versions.node,
    v8: process.versions.v8,
    arguments: process.execArgv.join(' '),
    NODE_OPTIONS: process.env.NODE_OPTIONS || '',
    'debug build': process.config.target_defaults.default_configuration === 'Debug' ? 'yes' : 'no',
    'link-time optimisation': String(variables.enable_lto),
    'shared V8': String(variables.node_shared),
    'pointer compression': String(variables.v8_enable_pointer_compression),
  }));
}

function main() {
  const [name, ...rest] = process.argv.slice(2);
  if (name === '--describe') return describe();
  const option = {};
  for (let i = 0; i < rest.length; i += 2) option[rest[i]] = Number(rest[i + 1]);
  const run = programs[name]();
  const clock = () => Number(process.hrtime.bigint());
  let rounds = 1, total = 0, took = 0, result = '';
  const turn = () => {
    total += rounds;
    const began = clock();
    for (let i = 0; i < rounds; i++) result = run();
    took = clock() - began;
  };
  if ('--operations' in option) {
    rounds = option['--operations'];
    turn();
  } else {
    const target = option['--target-ms'] * 1e6, warmUp = (option['--warm-up-ms'] || 0) * 1e6;
    // V8 compiles what was run often, in the background: it has as long again for that.
    const warmBy = clock() + Math.max(warmUp, 2 * target);
    let each = 0;
    do {
      turn();
      each = took / rounds;
      if (took < target / 4) rounds *= 2;
    } while (clock() < warmBy);
    rounds = Math.max(1, Math.floor(target / each));
    turn();
  }
  console.log(JSON.stringify({
    workload: 'interp:node.' + name,
    operations: rounds,
    total_operations: total,
    elapsed_ns: Math.round(took),
    unit: 'ops/s',
    result,
  }));
}

main();
