// npm run test:contract: holds the running gateway to its OpenAPI documents, with schemathesis, and calls for objects of others.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { checkForeignObjects } from './contract/foreign-objects.ts'
import { installedSchemathesis } from './contract/python.ts'
import { isRight, reportText } from './contract/report.ts'
import { type ContractOptions, type ContractTarget, runSchemathesis } from './contract/schemathesis.ts'
import { createParties, createTargets, startContractSystem } from './contract/system.ts'
import { StartError } from './node/start-error.ts'
import { LOCAL_FOLDER } from './script-environment.ts'

const USAGE = `npm run test:contract -- [options]
  --examples N   random cases of each operation in each phase, default 10; more take longer in proportion
  --seed N       repeats the run that printed N, default 1
  --workers N    operations that are tested at once, default 1: Python 3.11 parses code wrongly in several threads
                 (https://github.com/python/cpython/issues/106905)
  --only NAME    public or management; both without it
  --help         print this`

const DOCUMENT_NAMES = ['public', 'management']
const FOLDER = join(LOCAL_FOLDER, 'contract')

/** OpenAPI has no parameters for this header, and the MCP endpoint requires it. */
const MCP_HEADERS = `[[operations]]
include-path = "/v1/mcp"
headers = { Accept = "application/json, text/event-stream" }
`

interface Options extends ContractOptions {
  only: string[]
}

/** @returns null when only the usage is requested. @throws StartError for options that are not valid. */
function readOptions(): Options | null {
  const number = { type: 'string' } as const
  const { values } = parseArgs({
    options: {
      examples: { ...number, default: '10' },
      seed: { ...number, default: '1' },
      workers: { ...number, default: '1' },
      only: { type: 'string', multiple: true, default: DOCUMENT_NAMES },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const [examples = 0, seed = 0, workers = 0] = [values.examples, values.seed, values.workers].map(Number)
  if (![examples, seed, workers].every((each) => Number.isSafeInteger(each) && each >= 1)) {
    throw new StartError(`--examples, --seed and --workers take whole numbers\n${USAGE}`)
  }
  const unknown = values.only.find((name) => !DOCUMENT_NAMES.includes(name))
  if (unknown !== undefined) throw new StartError(`there is no document called ${unknown}\n${USAGE}`)
  return { examples, seed, workers, only: values.only }
}

async function main(): Promise<void> {
  const options = readOptions()
  if (options === null) return console.log(USAGE)
  const program = installedSchemathesis()
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true, mode: 0o700 })
  const { gateway, stop } = await startContractSystem()
  try {
    const access = await checkForeignObjects(await createParties(gateway))
    const { baseUrl, adminToken } = gateway
    const targets = await createTargets(gateway)
    // That of management comes last, because it changes providers and models.
    const all: ContractTarget[] = [
      {
        ...{ name: 'public', document: '/openapi.json', baseUrl, token: targets.public.key },
        ids: targets.public.public,
        settings: MCP_HEADERS,
      },
      {
        ...{ name: 'management', document: '/api/openapi.json', baseUrl, token: adminToken },
        ids: targets.management.management,
      },
    ]
    const documents = []
    for (const target of all.filter(({ name }) => options.only.includes(name))) {
      console.log(`Testing ${target.document} with seed ${options.seed}`)
      documents.push({ name: target.name, result: await runSchemathesis(program, target, options, FOLDER) })
    }
    console.log(reportText({ access, documents }))
    process.exitCode = isRight({ access, documents }) ? 0 : 1
  } finally {
    await stop()
  }
}

main().catch((error: unknown) => {
  console.error(`test:contract: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
})
