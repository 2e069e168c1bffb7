import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import './design/tokens.css'
import './design/base.css'
import { takeAddressToken } from './data/address-token.ts'
import { isFinalRefusal } from './data/refusals.ts'
import { applyTheme, readTheme } from './design/theme.ts'
import { router } from './routes.tsx'

applyTheme(readTheme())
takeAddressToken()

const queries = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 10_000, retry: (count, error) => count < 2 && !isFinalRefusal(error) },
  },
})

const root = document.getElementById('console')
if (root !== null) {
  createRoot(root).render(
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  )
}
