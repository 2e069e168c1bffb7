// The commands are bash: `${…}` in them is not a template.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: see above
import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { type ShellOutput, workspaceCaller } from './workspaces.ts'

let bomb: Buffer | undefined
/** 64 MB of zeros, twice what may be unpacked, compressed to about a thousandth of that. */
function gzipBomb(): Buffer {
  bomb ??= gzipSync(Buffer.alloc(64 * 2 ** 20))
  return bomb
}

/** A command that tries to harm its sandbox, and what must be true of its output. */
export interface HostileCommand {
  name: string
  commands: string[]
  /** Base64 of a file `file.b64` that is there before. */
  file?: () => string
  /** Text that the output must contain. */
  always?: RegExp
  /** Something that its output must not have. */
  never?: RegExp
  /** Whether it computes for longer than the runtime lets it, so that its process is killed. */
  endless?: true
  /** Whether it takes seconds of processor time for a bound that another command meets as well: `test:faults` runs it. */
  long?: true
}

const REFUSALS = /^(The call was interrupted|The tool is not available now)/

/**
 * Runs hostile commands in a workspace. Fails unless their output is harmless, and this workspace and another one work
 * afterwards with what they had.
 * @param bystander owner and id of the other workspace.
 * @param meanwhile what runs beside the commands.
 */
export async function expectHarmless(
  toolsUrl: string,
  { commands, file, always, never, endless }: HostileCommand,
  bystander: { organizationId: string; workspaceId: string },
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  const caller = workspaceCaller(toolsUrl)
  await caller.call('write_file', { path: 'kept.txt', content: 'kept' })
  if (file) await caller.call('write_file', { path: 'file.b64', content: file() })
  const other = workspaceCaller(toolsUrl, bystander)
  await other.call('write_file', { path: 'canary.txt', content: 'canary' })

  const running = caller.call('shell', { commands, timeout_ms: 1_000, max_output_length: null }).then(
    ({ members }) => members.output as ShellOutput[],
    (error: Error) => error,
  )
  await meanwhile()
  const result = await running

  if (endless) expect(String(result)).toMatch(/interrupted/)
  else if (result instanceof Error) expect(result.message).toMatch(REFUSALS)
  else expectHarmlessOutput(result, { always, never })
  expect((await caller.shell('cat kept.txt; echo {} | jq -c .polluted')).stdout).toBe('keptnull\n')
  expect((await other.shell('cat canary.txt; ls; echo $polluted$__proto__')).stdout).toBe(
    'canarycanary.txt\n\n',
  )
}

function expectHarmlessOutput(
  result: ShellOutput[],
  { always, never }: { always: RegExp | undefined; never: RegExp | undefined },
): void {
  const text = result.map(({ stdout, stderr }) => stdout + stderr).join('\n')
  if (always) expect(text).toMatch(always)
  if (never) expect(text).not.toMatch(never)
  expect(text).not.toMatch(/canary|executionLimits|at async|\.js:\d|TypeError/)
  for (const { stdout, stderr } of result) {
    expect(Buffer.byteLength(stdout)).toBeLessThan(70_000)
    expect(Buffer.byteLength(stderr)).toBeLessThan(70_000)
  }
}

/** A megabyte of one character in `x`. */
const MEGABYTE = 'x=a; for i in $(seq 20); do x=$x$x; done; '

/** Reads names that an attack may have set; the values must be empty. */
const POLLUTION_PROBE =
  "echo '{}' | jq -c '[.polluted, .__proto__, .toString]'; awk 'BEGIN{print a[\"polluted\"]}'; echo $polluted"

export const HOSTILE_COMMANDS: readonly HostileCommand[] = [
  { name: 'a fork bomb', commands: [':(){ :|:& };:', 'f() { f | f & }; f'] },
  {
    name: 'endless loops',
    commands: ['while true; do :; done', 'until false; do echo; done', 'for ((;;)); do :; done'],
  },
  {
    name: 'endless loops of commands',
    commands: [
      "awk 'BEGIN{while(1){}}'",
      "echo x | sed ':a;ba'",
      "echo 1 | jq 'def f: f; f'",
      "echo 1 | jq '[repeat(1)]'",
    ],
  },
  {
    name: 'recursion',
    commands: [
      'f() { f; }; f',
      "a='eval $a'; eval $a",
      "echo 'sh ./r' > r; sh ./r",
      'echo $(((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))))',
    ],
    long: true,
  },
  { name: 'yes', commands: ['yes | head', 'yes', 'cat /dev/zero | head -c 1000000000', 'cat /dev/urandom'] },
  {
    name: 'prototype pollution by jq',
    commands: [
      `echo '{"__proto__":{"polluted":"P"}}' | jq -c 'to_entries|from_entries'`,
      `echo '{}' | jq -c '.__proto__.polluted = "P" | .constructor.prototype.polluted = "P"'`,
      `echo '{}' | jq -c 'setpath(["__proto__","polluted"]; "P")'`,
      POLLUTION_PROBE,
    ],
    never: /\["P"/,
  },
  {
    name: 'prototype pollution by the shell',
    commands: [
      '__proto__=P; declare -A m; m[__proto__]=P; m[constructor]=P; export __proto__; read __proto__ <<< P; local __proto__',
      `awk 'BEGIN{a["__proto__"]["polluted"]="P"; a["__proto__"]="P"}'`,
      'mkdir __proto__; echo P > __proto__/polluted; echo P > constructor; alias __proto__=P; unset toString',
      POLLUTION_PROBE,
    ],
  },
  {
    name: 'names of Object.prototype as commands',
    commands: ['constructor; toString; __proto__; hasOwnProperty x; valueOf'],
  },
  {
    name: 'huge output',
    commands: [
      "printf '%999999999d' 1",
      "printf '%.999999999f' 1",
      'awk \'BEGIN{printf "%999999999d", 1}\'',
      `${MEGABYTE}for i in $(seq 50); do echo $x; done`,
      `echo '"a"' | jq '. * 1000000000'`,
    ],
    long: true,
  },
  {
    name: 'huge expansions',
    commands: [
      'echo {1..99999999}',
      'echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}',
      'seq 1 1000000000',
      's=a; while :; do s=$s$s; done',
      'a[999999999999]=1; echo ${#a[@]}',
    ],
  },
  {
    name: 'path escapes',
    commands: [
      'cat ../../../../etc/passwd /etc/shadow /proc/self/environ /proc/1/cmdline',
      'ls -la / /proc /dev /root /home; find / -maxdepth 3',
      'cd ..; cd ../..; pwd; ls; cat /dev/mem /dev/sda',
    ],
    never: /root:x|HEADGATE|KEY_PEPPERS|workerd|node_modules/,
  },
  {
    name: 'links',
    commands: [
      'ln -s / r; ls r r/etc r/proc; ln -s ../../../../etc e; cat e/passwd; ln -s l l; cat l; ls -R r | head',
      'ln -s /proc/self p; cat p/environ p/maps; ln -s ../tmp/../.. up; ls up',
    ],
    never: /root:x|HEADGATE|workerd/,
  },
  {
    name: 'environment of the host',
    commands: ['env; set; export -p; cat /proc/self/environ; echo $KEY_PEPPERS $DATABASE_URL $ADMIN_TOKEN'],
    never: /postgres|KEY_PEPPERS=|TOKEN=|workerd/,
  },
  {
    name: 'exploding regular expressions',
    commands: [
      "a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!; echo $a | grep -E '(a+)+$'; echo $a | grep -P '(a+)+$'; echo $a | sed -E 's/(a|a)*$/x/'; echo $a | awk '/(a*)*b/'; echo \"\\\"$a\\\"\" | jq 'test(\"(a+)+$\")'; [[ $a =~ (a+)+$ ]]; [[ $a == +(+(a))b ]]; echo ${a//+(+(a))b/}; echo $a | rg '(a+)+$'; find . -regex '(a+)+$'; expr $a : '\\(a*\\)*b'",
    ],
  },
  {
    name: 'a large regular expression on a large text',
    commands: [`${MEGABYTE}echo $x | grep -c -E 'a{1,1000}b'`],
    endless: true,
  },
  {
    name: 'nested loops within a command',
    commands: [
      "awk 'BEGIN{for(i=0;i<9999;i++)for(j=0;j<9999;j++)for(k=0;k<9999;k++)n++}'",
      "awk 'BEGIN{for(i=0;i<9999;i++)a[i]; for(i in a)for(j in a)for(k in a);}'",
      "awk 'function f(n){return n<2?n:f(n-1)+f(n-2)} BEGIN{f(60)}'",
      "for i in $(seq 900); do sed ':a;s/x/y/;s/y/x/;ta' <<< x; done",
      "for i in $(seq 900); do jq -n '[range(3000)]|map(.+1)|add'; done",
    ],
    long: true,
  },
  {
    name: 'a loop over a long text',
    commands: [`${MEGABYTE}for i in $(seq 9000); do y=\${#x}; done`],
    long: true,
  },
  {
    name: 'a difference of two unlike files',
    commands: ['seq 9000 > f1; sort -r f1 > f2; cat f1 f1 f1 > f3; cat f2 f2 f2 > f4; diff f3 f4 | wc -l'],
  },
  {
    name: 'a gzip bomb',
    commands: [
      `${MEGABYTE}for i in $(seq 12); do echo -n $x; done | gzip > b.gz; for i in $(seq 60); do cat b.gz; done > c.gz; gunzip -c c.gz | wc -c; zcat c.gz c.gz c.gz | wc -c; gunzip c.gz`,
    ],
    long: true,
  },
  {
    name: 'a gzip bomb of one member',
    always: /decompressed data exceeds limit/,
    file: () => gzipBomb().toString('base64'),
    commands: [
      'base64 -d file.b64 > b.gz; gunzip -c b.gz | wc -c',
      'gzip -t b.gz; gzip -l b.gz; gzip -dc b.gz > out; wc -c out',
      'zcat b.gz | head -c 10 | od -c; cp b.gz c.gz; gunzip c.gz; ls -l',
      'rg -z a b.gz; rg -z --count "" .',
    ],
    long: true,
  },
  {
    name: 'a gzip bomb in a gzip bomb',
    always: /decompressed data exceeds limit/,
    file: () => gzipSync(gzipBomb()).toString('base64'),
    commands: [
      'base64 -d file.b64 > b.gz.gz; gunzip b.gz.gz; gunzip b.gz; ls -l',
      'base64 -d file.b64 | gunzip | gunzip | wc -c; base64 -d file.b64 | zcat | zcat | zcat | wc -c',
    ],
  },
  {
    name: 'many files and deep folders',
    commands: [
      'touch f{1..1990}; for i in $(seq 30); do : > g$i; done; ls | wc -l',
      'rm -f f* g*; d=.; for i in $(seq 500); do d=$d/d; done; mkdir -p $d; mkdir -p d/d && cd d && mkdir -p $d',
      'for i in $(seq 60); do mkdir n && cd n; done; cd /workspace; find . | wc -l; rm -rf d n',
    ],
    long: true,
  },
  {
    name: 'long and binary names',
    commands: [
      `${MEGABYTE}echo > $x; mkdir $x; cd $x; cat $x; ls $x`,
      "touch \"$(printf '\\xff\\xfe\\t\\n')\" $'a\\x01b' '..' '.' ''; ls; rm -f ./a*",
      "touch ../x '../../etc/x' $'a\\0b'; ls /etc",
    ],
  },
  {
    name: 'a file larger than its quota',
    commands: [
      `${MEGABYTE}for i in $(seq 70); do echo -n $x >> big; done; wc -c < big; for i in $(seq 9); do cp big b$i; done; du -s .; rm -f big b*`,
    ],
    long: true,
  },
  { name: 'a command of a megabyte', commands: [`echo ${'a'.repeat(1_000_000)} | wc -c`] },
  {
    name: 'deeply nested source',
    commands: [
      `echo ${'$('.repeat(5_000)}1${')'.repeat(5_000)}`,
      `${'('.repeat(20_000)}${')'.repeat(20_000)}`,
      `${'{ '.repeat(20_000)}`,
      `echo $((${'('.repeat(20_000)}1${')'.repeat(20_000)}))`,
    ],
  },
  {
    name: 'deeply nested data',
    commands: [
      "s=$(printf '[%.0s' $(seq 9000)); echo $s | jq .",
      "echo 1 | jq '[limit(100000; repeat([[[[1]]]]))] | flatten | length'",
      'awk "BEGIN{print $(printf \'(%.0s\' $(seq 5000))1}"',
    ],
  },
  {
    name: 'waiting in the background',
    commands: ['sleep 60 & sleep 60 & timeout 100 sleep 100 & wait', 'sleep 1000 & echo out'],
  },
  {
    name: 'code in other languages',
    commands: [
      'bash -c \'eval "$(echo ZWNobyBoaQ== | base64 -d)"\'',
      "js-exec 'globalThis.polluted=1'",
      "python3 -c 'import os'",
      'sqlite3 :memory: "select load_extension(1)"',
      'awk \'BEGIN{system("cat /etc/passwd"); "cat /etc/passwd" | getline x; print x}\'',
      'xargs -a /etc/passwd; exec 3<>/dev/tcp/127.0.0.1/80; cat <&3; cat < /dev/tcp/127.0.0.1/22',
    ],
    never: /root:x|SSH/,
  },
]
