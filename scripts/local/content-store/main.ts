// node scripts/local/content-store/main.ts --port 8082 --data .headgate/content

import { startContentStore } from '../../node/content-store/server.ts'
import { claimPath } from '../../node/folder-claim.ts'
import { OptionError } from '../../node/start-error.ts'
import { runAsProcess } from '../stand-in-process.ts'

await runAsProcess('local content store', { data: { type: 'string' } }, async ({ data }, port) => {
  if (typeof data !== 'string') throw new OptionError('--data names the folder that the objects are in')
  return startContentStore({ folder: data, port, claim: claimPath })
})
