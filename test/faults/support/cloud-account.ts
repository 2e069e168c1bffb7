import { openDatabase } from '../../../scripts/database.ts'
import { CloudDeployment } from '../../harness/cloud/cloud-deployment.ts'

/** Runs statements in the database of a deployment. @param postgres address of the Postgres stand-in */
export async function sqlOf(postgres: string, ...statements: string[]): Promise<void> {
  const opened = await openDatabase({
    DATABASE_URL: 'postgres://headgate:local@127.0.0.1/headgate',
    DATABASE_FETCH_ENDPOINT: `${postgres}/sql`,
  })
  await opened.transaction(statements).finally(() => opened.close())
}

/** An account without anything but a database that has its schema, which takes seconds to make. */
export async function emptyAccount(postgres: string): Promise<CloudDeployment> {
  const deployment = new CloudDeployment(postgres)
  await deployment.start()
  deployment.cloud.neon.projects.push({ id: 'project-of-the-tests', name: 'headgate', branches: [] })
  await sqlOf(postgres, 'drop schema if exists headgate_deployment cascade')
  return deployment
}

/** An account without anything at all. */
export async function accountWithoutDatabase(postgres: string): Promise<CloudDeployment> {
  const deployment = await emptyAccount(postgres)
  deployment.cloud.neon.projects.length = 0
  await sqlOf(
    postgres,
    'drop schema if exists drizzle cascade',
    'drop schema if exists public cascade',
    'create schema public',
  )
  return deployment
}
