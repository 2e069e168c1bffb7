import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { configurationSchema, isLocalAddress } from '../../src/env.ts'
import { DeployError } from './deploy-error.ts'
import { isSecretName } from './secrets.ts'

/** Names of Workers and buckets; also used unquoted in headers and paths. */
const resourceName = z.string().regex(/^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/, 'must be a name of a-z, 0-9 and -')

const host = z
  .string()
  .regex(/^(?!-)[a-z0-9.-]+\.[a-z]{2,}$/, 'must be a host name, such as gateway.example.com')

const variables = z.record(z.string(), z.string()).superRefine((values, context) => {
  for (const name of Object.keys(values)) {
    if (isSecretName(name)) {
      context.addIssue({ code: 'custom', path: [name], message: 'is a secret: it must not be in this file' })
    } else if (!(name in configurationSchema.shape)) {
      context.addIssue({ code: 'custom', path: [name], message: 'is no variable of the Worker' })
    }
  }
})

/** Shares of the traffic in percent, rising to 100. */
const rolloutSteps = z
  .array(z.number().int().min(1).max(100))
  .min(1)
  .refine((steps) => steps.at(-1) === 100, 'must end with 100')
  .refine((steps) => steps.every((step, index) => index === 0 || step > (steps[index - 1] ?? 0)), 'must rise')

const neonProject = z.strictObject({
  /** Name of the project, or its id. */
  project: z.string().min(1),
  /** Where it is created, such as `aws-eu-central-1`. */
  region: z.string().min(1),
  /** For keys of an organization. */
  organization: z.string().optional(),
  database: z.string().default('neondb'),
  role: z.string().default('neondb_owner'),
})

const upstashDatabase = z.strictObject({
  database: z.string().min(1),
  /** Where it is created, such as `eu-central-1`. */
  region: z.string().min(1),
})

const settingsObject = z.strictObject({
  $schema: z.string().optional(),
  /** Name of this deployment: of its folder of files, and in what is printed. */
  stage: resourceName,
  /** Id of the Cloudflare account. */
  account: z.string().regex(/^[0-9a-f]{32}$/, 'must be the id of an account, 32 hexadecimal digits'),
  gateway: z.strictObject({
    name: resourceName.default('headgate'),
    /** Custom domains of the Worker, the first one its BASE_URL. */
    hosts: z.array(host).default([]),
    /** Whether the Worker also has its address below workers.dev. */
    workersDev: z.boolean().default(false),
    variables: variables.default({}),
  }),
  tools: z.strictObject({ name: resourceName.default('headgate-tools') }).prefault({}),
  bucket: resourceName.default('headgate-content'),
  /** `environment`: DATABASE_URL is given. */
  database: z.union([z.literal('environment'), z.strictObject({ neon: neonProject })]).default('environment'),
  /** `environment`: UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN are given. */
  redis: z
    .union([z.literal('environment'), z.strictObject({ upstash: upstashDatabase })])
    .default('environment'),
  /** File of secrets, relative to the repository; default `.headgate/deploy/<stage>/secrets.json`. */
  secretsFile: z.string().min(1).optional(),
  rollout: z
    .strictObject({
      steps: rolloutSteps.default([10, 100]),
      /** Seconds at each share below 100, before the test runs again. */
      waitSeconds: z.number().int().min(0).max(3600).default(60),
    })
    .prefault({}),
  smokeTest: z
    .strictObject({
      /** Origin that is called; default: the first host. */
      url: z.url({ protocol: /^https?$/ }).optional(),
      /** Model of a call with SMOKE_TEST_KEY. */
      model: z.string().min(1).optional(),
    })
    .prefault({}),
})

/** The test sends ADMIN_TOKEN and SMOKE_TEST_KEY, which must not go over a network as plain text. */
const settingsSchema = settingsObject.superRefine((settings, context) => {
  const origin = testedOrigin(settings)
  if (origin === null || isLocalAddress(origin) || !/^http:/i.test(origin.trim())) return
  const path =
    settings.smokeTest.url === undefined ? ['gateway', 'variables', 'BASE_URL'] : ['smokeTest', 'url']
  const message =
    'must begin with https:, because the smoke test sends credentials; http is for loopback only'
  context.addIssue({ code: 'custom', path, message })
})

/** What `deploy.json` says. It holds no secret, and is committed. */
export type DeploySettings = z.infer<typeof settingsObject>

/** Checks settings. @throws DeployError naming every member that does not fit */
export function parseSettings(value: unknown, file = 'deploy.json'): DeploySettings {
  const parsed = settingsSchema.safeParse(value)
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'the file'}: ${message}`)
  throw new DeployError(`${file} does not fit. ${issues.join('; ')}`)
}

/** Reads and checks `deploy.json`. @throws DeployError if it is missing, damaged or does not fit */
export function readSettings(file: string): DeploySettings {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    throw new DeployError(`${file} cannot be read; copy deploy.example.json and fill it in`)
  }
  try {
    return parseSettings(JSON.parse(text), file)
  } catch (error) {
    if (error instanceof DeployError) throw error
    throw new DeployError(`${file} is no JSON`)
  }
}

/** The address at which the gateway is tested; null if the settings have none. */
export function testedOrigin({ gateway, smokeTest }: DeploySettings): string | null {
  const first = gateway.hosts[0]
  return smokeTest.url ?? (first === undefined ? (gateway.variables.BASE_URL ?? null) : `https://${first}`)
}
