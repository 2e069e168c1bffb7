// npm run services: what the gateway needs on this machine, without the gateway, for `npx wrangler dev` beside it.
// `-- --fresh` begins with empty data, PORT is where wrangler listens.
import { readFileSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { DEFAULT_PORT } from './dev-plan.ts'
import { type LocalSystem, runLocalSystem } from './local-system.ts'
import { writePrivateFile } from './node/private-file.ts'
import { StartError } from './node/start-error.ts'
import { SERVICES_FOLDER } from './script-environment.ts'

/** wrangler reads it beside wrangler.toml; npm runs this in that folder. */
const VARIABLES_FILE = resolve('.dev.vars')
/** Folder of wrangler's Durable Objects and R2. Their records are in Postgres, so `--fresh` empties both. */
const WRANGLER_STATE = resolve('.wrangler/state')

const HEADER = '# Written by npm run services, and removed when it ends.\n'

/** @throws StartError for a file that was written by hand, which would be lost */
function checkVariablesFile(): void {
  const present = readText(VARIABLES_FILE)
  if (present !== null && !present.startsWith(HEADER))
    throw new StartError('.dev.vars was not written by npm run services; move it away first')
}

async function writeVariables({ variables, cleanUps }: LocalSystem): Promise<void> {
  cleanUps.push(() => rmSync(VARIABLES_FILE, { force: true }))
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${quote(name, value)}\n`)
  writePrivateFile(VARIABLES_FILE, HEADER + lines.join(''))
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

/** A value in quotes that it does not contain itself: the format has no escapes. */
function quote(name: string, value: string): string {
  const mark = ["'", '"', '`'].find((candidate) => !value.includes(candidate))
  if (mark === undefined || value.includes('\\'))
    throw new StartError(`${name} cannot be written to .dev.vars`)
  return mark + value + mark
}

runLocalSystem({
  command: 'npm run services',
  folder: SERVICES_FOLDER,
  kept: [],
  removeMore: () => rmSync(WRANGLER_STATE, { recursive: true, force: true }),
  takesPort: false,
  check: checkVariablesFile,
  startGateway: writeVariables,
  announcement: ({ port }, seconds) => {
    const options = port === DEFAULT_PORT ? '' : ` --port ${port}`
    return `The services are ready after ${seconds} s. Now, in another terminal:

  npx wrangler dev -c wrangler.toml -c workers/tools/wrangler.toml${options}

It reads .dev.vars and serves the gateway, with the script of tools:`
  },
})
