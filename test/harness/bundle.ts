import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildWorker } from '../../scripts/build.ts'

/** Builds the Worker into a folder of its own, as it would be deployed. */
export async function buildBundle(): Promise<{ directory: string; remove: () => void }> {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-bundle-'))
  const remove = () => rmSync(directory, { recursive: true, force: true })
  try {
    await buildWorker(directory)
  } catch (error) {
    remove()
    throw error
  }
  return { directory, remove }
}
