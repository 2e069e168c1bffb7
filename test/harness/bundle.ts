import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildScripts } from '../../scripts/build.ts'

/** Builds both scripts into a folder of their own, as they would be deployed. */
export async function buildBundle(): Promise<{ directory: string; remove: () => void }> {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-bundle-'))
  const remove = () => rmSync(directory, { recursive: true, force: true })
  try {
    await buildScripts(directory)
  } catch (error) {
    remove()
    throw error
  }
  return { directory, remove }
}
