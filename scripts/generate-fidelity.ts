// npm run generate:fidelity: writes docs/fidelity.md from what translation makes of the cases of its tests.

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { provideIdentityStream } from '../test/unit/gateway/identity-stream.ts'
import { FIDELITY_FILE, fidelityDocument } from '../test/unit/gateway/translation/fidelity/document.ts'

provideIdentityStream()
mkdirSync(dirname(FIDELITY_FILE), { recursive: true })
writeFileSync(FIDELITY_FILE, await fidelityDocument())
console.log(`generate: wrote ${FIDELITY_FILE}`)
