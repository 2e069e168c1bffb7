import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { DeployError } from './deploy-error.ts'
import { UPLOADED_SECRETS } from './secrets.ts'

const ROOT = join(import.meta.dirname, '../..')

export const USAGE = `Deploys both Workers of Headgate to Cloudflare, with what they need (docs/deployment.md).

usage: npm run deploy -- [--plan] [--yes] [--json] [--config <file>] [--rotate <name>] …

  --plan            prints the plan and ends: exit code 0 without changes, 2 with changes, 1 if it cannot be applied
  --yes             applies the plan without a question
  --json            prints one JSON document on stdout; the plan and progress go to stderr
  --config <file>   settings of another stage; default: deploy.json
  --rotate <name>   replaces a secret of the gateway, such as ADMIN_TOKEN; may be given several times
  --help            prints this text`

export interface DeployOptions {
  plan: boolean
  yes: boolean
  json: boolean
  help: boolean
  config: string
  /** Names of secrets that get another value. */
  rotate: string[]
}

/** Reads the arguments of the command. @throws DeployError for a name that is not of a secret; TypeError, which quotes it, for any other argument */
export function readOptions(parameters: string[]): DeployOptions {
  const { values } = parseArgs({
    args: parameters,
    options: {
      plan: { type: 'boolean', default: false },
      yes: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
      config: { type: 'string', default: join(ROOT, 'deploy.json') },
      rotate: { type: 'string', multiple: true, default: [] },
    },
  })
  // The argument is not repeated in the message: it may be a value that was given by mistake.
  if (values.rotate.some((name) => !UPLOADED_SECRETS.includes(name))) {
    throw new DeployError(`--rotate takes the name of a secret: ${UPLOADED_SECRETS.join(', ')}`)
  }
  return values
}
