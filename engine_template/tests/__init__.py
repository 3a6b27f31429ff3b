"""What these rules promise; run them with: pytest"""
