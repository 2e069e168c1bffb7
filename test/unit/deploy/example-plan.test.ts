import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { DEPLOYMENT_PAGE, withExamplePlan } from './example-plan.ts'

it('docs/deployment.md shows the plan of this checkout; npm run generate:deploy-plan writes it', async () => {
  const page = readFileSync(DEPLOYMENT_PAGE, 'utf8')
  expect(page).toBe(await withExamplePlan(page))
})
