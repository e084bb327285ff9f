"""The rules of `signalbox doctor`: what an account, a region and a machine need before a deployment."""
