import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    databaseEndpoint: string
  }
}

/**
 * Starts embedded Postgres with the newest schema in a process of its own, since in here its packages would resolve with
 * the Worker's export conditions.
 */
export async function setup(project: TestProject): Promise<() => void> {
  const script = join(import.meta.dirname, '../harness/migrated-postgres.ts')
  const child = spawn(process.execPath, [script, '--parent'], { stdio: ['pipe', 'pipe', 'inherit'] })
  project.provide('databaseEndpoint', `http://127.0.0.1:${await portOf(child)}/sql`)
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
