import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeMigrations } from '../../../scripts/deploy/account.ts'
import { NO_RECORD } from '../../../scripts/deploy/lease.ts'
import { planDeployment } from '../../../scripts/deploy/plan.ts'
import type { AccountState } from '../../../scripts/deploy/plan-types.ts'
import { type Release, readRelease, STATIC_FILES } from '../../../scripts/deploy/release.ts'
import { renderPlan } from '../../../scripts/deploy/render-plan.ts'
import { type DeploySettings, readSettings } from '../../../scripts/deploy/settings.ts'
import { pendingMigrations } from '../../../scripts/migrate.ts'

const ROOT = join(import.meta.dirname, '../../..')
export const DEPLOYMENT_PAGE = join(ROOT, 'docs/deployment.md')

/** The plan of a first deployment with deploy.example.json, as the page of deployments shows it. */
async function examplePlan(): Promise<string> {
  const settings = readSettings(join(ROOT, 'deploy.example.json'))
  const state: AccountState = {
    accountName: 'Acme',
    database: {
      exists: false,
      pending: describeMigrations(await pendingMigrations(null)),
      hasProtectedData: false,
      ...NO_RECORD,
    },
    redis: { exists: false },
    bucket: { exists: false },
    tools: null,
    gateway: null,
    hosts: [],
  }
  const known = { DATABASE_URL: 'Neon', UPSTASH_REDIS_REST_TOKEN: 'Upstash' } as const
  return renderPlan(
    settings,
    state.accountName,
    planDeployment(settings, exampleRelease(settings), state, known),
  )
}

/** The configuration of this checkout, with tags that do not change with its code. */
function exampleRelease(settings: DeploySettings): Release {
  const bundle = mkdtempSync(join(tmpdir(), 'headgate-example-plan-'))
  try {
    mkdirSync(join(bundle, 'tools'))
    for (const entry of ['gateway.js', 'tools/tools.js']) writeFileSync(join(bundle, entry), '')
    const { tools, gateway } = readRelease(
      settings,
      { scripts: bundle, assets: STATIC_FILES },
      { BASE_URL: 'https://gateway.example.com' },
    )
    return { tools: { ...tools, tag: 'hg-4f7228f' }, gateway: { ...gateway, tag: 'hg-fd2fce9' } }
  } finally {
    rmSync(bundle, { recursive: true })
  }
}

const EXAMPLE = /^```text\nPlan for account [\s\S]*?^```$/m

/** The page with the plan of this checkout. @throws Error if it has no place for one */
export async function withExamplePlan(page: string): Promise<string> {
  if (!EXAMPLE.test(page)) throw new Error('docs/deployment.md has no plan')
  const plan = await examplePlan()
  return page.replace(EXAMPLE, () => `\`\`\`text\n${plan}\nContinue? [y/N]\n\`\`\``)
}
