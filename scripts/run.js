// node scripts/run.js <name> [parameters]: runs scripts/<name>.ts on a Node.js that reads TypeScript.
//
// npm's scripts begin here, in plain JavaScript, because an older Node.js cannot load a .ts file at all, and npm 10 leaves
// no node_modules/.bin/node: with the packages of other platforms it removes the link that they share with ours.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { runMain } from 'node:module'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** The first version with `import.meta.main`. */
const [LEAST_MAJOR, LEAST_MINOR] = [24, 2]

const [name, ...parameters] = process.argv.slice(2)
const script = join(ROOT, 'scripts', `${name}.ts`)
const pinned = pinnedNode()

if (name === undefined || !existsSync(script)) {
  fail(
    name === undefined ? 'usage: node scripts/run.js <name> [parameters]' : `there is no scripts/${name}.ts`,
  )
} else if (readsTypeScript()) {
  process.argv.splice(1, 2, script)
  runMain()
} else if (pinned !== undefined) {
  runOn(pinned)
} else {
  const least = `${LEAST_MAJOR}.${LEAST_MINOR}`
  fail(
    `this is Node.js ${process.versions.node}; run npm ci, which installs a newer one, or use ${least} or newer`,
  )
}

function readsTypeScript() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  return major > LEAST_MAJOR || (major === LEAST_MAJOR && minor >= LEAST_MINOR)
}

/** Path of the Node.js that package.json pins for this platform; undefined if it is not installed. */
function pinnedNode() {
  const { optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const platform = process.platform === 'win32' ? 'win' : process.platform
  const file = process.platform === 'win32' ? 'node.exe' : 'node'
  return Object.keys(optionalDependencies)
    .filter((dependency) => dependency.endsWith(`-${platform}-${process.arch}`))
    .map((dependency) => join(ROOT, 'node_modules', dependency, 'bin', file))
    .find((path) => existsSync(path))
}

/** Runs the script in a process of that Node.js, which gets the signals and whose exit code is ours. */
function runOn(node) {
  const child = spawn(node, [script, ...parameters], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.once('error', (error) => fail(`${node}: ${error.message}`))
  child.once('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
}

function fail(message) {
  process.stderr.write(`headgate: ${message}\n`)
  process.exitCode = 1
}
