// npm run generate:catalogue: writes scripts/model-catalogue/model-catalogue.json from the price list and its corrections.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildCatalogue } from './model-catalogue/build-catalogue.ts'
import { staleCorrections } from './model-catalogue/stale-corrections.ts'

export const CATALOGUE_FILE = join(import.meta.dirname, 'model-catalogue/model-catalogue.json')

/** The text of the catalogue file for the installed price list, one model on a line. */
export function generateCatalogue(): string {
  const { source, models } = buildCatalogue()
  const lines = models.map((model) => JSON.stringify(model)).join(',\n')
  const unit = 'micro-credits per million tokens'
  return `{"source":${JSON.stringify(source)},"unit":${JSON.stringify(unit)},"models":[\n${lines}\n]}\n`
}

if (import.meta.main) {
  const stale = staleCorrections()
  if (stale.length > 0)
    throw new Error(`the price list has changed; see the corrections of ${stale.join(', ')}`)
  writeFileSync(CATALOGUE_FILE, generateCatalogue())
  console.log(`wrote ${CATALOGUE_FILE}`)
}
