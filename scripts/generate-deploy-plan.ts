// npm run generate:deploy-plan: writes the plan of a first deployment into docs/deployment.md.
import { readFileSync, writeFileSync } from 'node:fs'
import { DEPLOYMENT_PAGE, withExamplePlan } from '../test/unit/deploy/example-plan.ts'

writeFileSync(DEPLOYMENT_PAGE, await withExamplePlan(readFileSync(DEPLOYMENT_PAGE, 'utf8')))
console.log(`generate: wrote ${DEPLOYMENT_PAGE}`)
