import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from '../node/start-error.ts'
import { LOCAL_FOLDER } from '../script-environment.ts'

/** https://pypi.org/project/schemathesis/: pinned, because each version adds checks. */
const VERSION = '4.32.5'
const FOLDER = join(LOCAL_FOLDER, 'schemathesis')
const COMMANDS = join(FOLDER, process.platform === 'win32' ? 'Scripts' : 'bin')
/** Written last, so that an installation that was cut off is begun anew. */
const COMPLETE = join(FOLDER, `complete-${VERSION}`)

/**
 * The program schemathesis, in a virtual environment below the folder of the local system. It is installed from PyPI on first use.
 * @throws StartError without Python, or if the installation fails
 */
export function installedSchemathesis(): string {
  const program = join(COMMANDS, 'schemathesis')
  if (existsSync(COMPLETE)) return program
  const python = ['python3', 'python'].find((name) => succeeds(name, ['-c', SUPPORTED]))
  if (python === undefined)
    throw new StartError('schemathesis needs Python 3.10 or newer (python3), with venv')
  console.log(`Installing schemathesis ${VERSION} from PyPI into ${FOLDER}`)
  rmSync(FOLDER, { recursive: true, force: true })
  run(python, ['-m', 'venv', FOLDER])
  const quietly = ['install', '--quiet', '--disable-pip-version-check']
  run(join(COMMANDS, 'python'), ['-m', 'pip', ...quietly, `schemathesis==${VERSION}`])
  run(join(COMMANDS, 'python'), ['-c', `open(${JSON.stringify(COMPLETE)}, "w").close()`])
  return program
}

const SUPPORTED = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))'

const succeeds = (command: string, parameters: string[]): boolean =>
  spawnSync(command, parameters, { stdio: 'ignore' }).status === 0

/** @throws StartError with the last line that the command wrote. */
function run(command: string, parameters: string[]): void {
  const { status, stderr } = spawnSync(command, parameters, { encoding: 'utf8' })
  if (status === 0) return
  const reason = (stderr ?? '').trim().split('\n').at(-1) || 'no reason given'
  throw new StartError(`schemathesis could not be installed: ${reason}`)
}
