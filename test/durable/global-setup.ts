import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

const REPOSITORY = join(import.meta.dirname, '../..')

declare module 'vitest' {
  interface ProvidedContext {
    databaseEndpoint: string
  }
}

/**
 * Starts embedded Postgres in a process of its own, since in here its packages would resolve with the Worker's export
 * conditions, and brings its schema up to date.
 */
export async function setup(project: TestProject): Promise<() => void> {
  const script = join(REPOSITORY, 'scripts/local/postgres/main.ts')
  const child = spawn(process.execPath, [script, '--port', '0', '--data', 'memory', '--parent'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const endpoint = `http://127.0.0.1:${await portOf(child)}/sql`
  await migrate(endpoint)
  project.provide('databaseEndpoint', endpoint)
  return () => {
    child.kill()
  }
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout?.on('data', (chunk) => {
      output += chunk
      const line = /^\{"ready":true.*$/m.exec(output)
      if (line) resolve(JSON.parse(line[0]).port)
    })
    child.once('exit', (code) => reject(new Error(`local Postgres ended with ${code} before it was ready`)))
  })
}

async function migrate(endpoint: string): Promise<void> {
  const folder = join(REPOSITORY, 'schema/migrations')
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  for (const file of files) {
    const statements = (await readFile(join(folder, file), 'utf8')).split('--> statement-breakpoint')
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'neon-connection-string': 'postgres://local@localhost/headgate' },
      body: JSON.stringify({ queries: statements.map((query) => ({ query, params: [] })) }),
    })
    if (!response.ok) throw new Error(`migration ${file}: ${await response.text()}`)
  }
}
